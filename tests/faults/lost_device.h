// An OpenCL layer by which a device is lost, from some launch on, or stands still.
#pragma once

extern "C" {

// The device whose name begins with `name` ("*": each) refuses launches after the next `after` ones;
// nullptr: none does. Programs that do not link the layer say it by CLINFER_LOSE_DEVICE=NAME and
// CLINFER_LOSE_AFTER=N.
void lose_device(const char* name, long after);

// Launches on the device whose name begins with `name` wait until another call, but no longer than a
// minute; nullptr: they go on.
void hold_device(const char* name);

// The device whose name begins with `name` takes launches, but begins none before another call;
// nullptr: it begins them.
void stall_device(const char* name);
}
