// (helper OPSC is writing this operation now; OPSA: leave it)
