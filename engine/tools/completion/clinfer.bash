# Completion of clinfer for bash: commands and options are asked of the program, so that they are those that it has.
_clinfer() {
  local current=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]} words
  if [ "$COMP_CWORD" = 1 ]; then
    words="$("$program" --help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p') --help --version"
  elif [[ $current == -* ]]; then
    words="$("$program" "${COMP_WORDS[1]}" --help 2>/dev/null | sed -n 's/^  \(--*[a-z-]*\) .*/\1/p') --help"
  else
    return  # files: the default of `complete`
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _clinfer clinfer
