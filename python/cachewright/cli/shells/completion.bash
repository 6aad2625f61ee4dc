
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
  local line="${COMP_LINE:0:COMP_POINT}" found word option before head=""
  local -a words
  read -ra words <<< "$line"
  [[ "$line" == *[[:space:]] ]] && words+=("")
  word="${words[-1]}" option="${words[-2]}"
  if [[ "$word" == --*=* ]]; then
    option="${word%%=*}" word="${word#*=}"
  fi
  _cachewright_found "$option" "$word"
  if [[ -z "$found" && "${words[1]}" == reproduce && "$word" != -* ]]; then
    case "${#words[@]}" in
      3) found="@PAPERS@" ;;
      4) case "${words[2]}" in
@FIGURES@
      esac ;;
    esac
  fi
  [[ -z "$found" ]] && return 1
  # Of a list the last value is completed, of KEY=VALUE the value.
  before="${word##*=}"
  [[ "$before" == *,* ]] && head="${before%,*},"
  COMPREPLY=($(compgen -P "$head" -W "$found" -- "${before##*,}"))
  [[ "${COMPREPLY[0]-}" == *= ]] && compopt -o nospace 2> /dev/null
  return 0
}

_cachewright_all() {
  _cachewright_values || _cachewright "$@"
}

complete -F _cachewright_all cachewright
