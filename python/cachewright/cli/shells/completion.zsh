
# Values of options, keys after --set and --vary, papers and figures; all else as above.
_cachewright_found() {
  # The option (or paper) $1, the text before the cursor $2; sets `found`.
  found=""
  case "$1" in
@OPTIONS@
    --set | --vary) case "$2" in
      *=*) case "${2%%=*}" in
@VALUES@
      esac ;;
      *) found="@KEYS@" ;;
    esac ;;
  esac
}

_cachewright_values() {
  local found word="${words[CURRENT]}" option="${words[CURRENT-1]}" option_part=""
  if [[ "$word" == --*=* ]]; then
    option="${word%%=*}" option_part="${word%%=*}=" word="${word#*=}"
  fi
  _cachewright_found "$option" "$word"
  if [[ -z "$found" && "${words[2]}" == reproduce && "$word" != -* ]]; then
    case "$CURRENT" in
      3) found="@PAPERS@" ;;
      4) case "${words[3]}" in
@FIGURES@
      esac ;;
    esac
  fi
  [[ -z "$found" ]] && return 1
  # Of a list the last value is completed, of KEY=VALUE the value.
  local before="${word##*[=,]}"
  local head="$option_part${word%$before}"
  compset -P "${(q)head}" 2> /dev/null
  compadd -S '' -- ${=found}
  return 0
}

_cachewright() {
  _cachewright_values || _cyclopts_cachewright "$@"
}

if [[ "${funcstack[1]}" == _cachewright ]]; then
  _cachewright "$@"
else
  compdef _cachewright cachewright
fi
