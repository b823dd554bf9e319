import type { Command, Option } from 'commander';

/** Shells for which there is a script. */
export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

/** What may follow the words of one command. */
interface Place {
  /** The words after `holdfast`, each with a space before it. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly text: string }[];
  readonly options: readonly { readonly name: string; readonly text: string; readonly takesValue: boolean }[];
}

/** The script that completes the commands below `program` and their options in a shell. */
export function completionScript(program: Command, shell: Shell): string {
  const places = placesOf(program, '');
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](places);
}

function placesOf(command: Command, path: string): Place[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command);
  const options = help.visibleOptions(command).filter(({ long }) => long !== undefined && long !== null);
  const own: Place = {
    path,
    commands: commands.map((each) => ({ name: each.name(), text: each.description() })),
    options: options.map((option: Option) => ({
      name: option.long as string,
      text: option.description,
      takesValue: option.required || option.optional,
    })),
  };
  const below = commands
    .filter((each) => each.name() !== 'help')
    .flatMap((each) => placesOf(each, `${path} ${each.name()}`));
  return [own, ...below];
}

/** Patterns of a `case` with the paths of all commands but the root. */
const pathsOf = (places: readonly Place[]): string[] =>
  places.flatMap(({ path }) => (path === '' ? [] : [`"${path}"`]));

function bashScript(places: readonly Place[]): string {
  const cases = places.map(
    ({ commands, options, path }) =>
      `    "${path}") words="${[...commands, ...options].map(({ name }) => name).join(' ')}" ;;`,
  );
  return `# bash completion of holdfast: source <(holdfast completion bash)
_holdfast() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" word words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
      ${pathsOf(places).join('|')}) path="$path $word" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _holdfast holdfast
`;
}

function zshScript(places: readonly Place[]): string {
  const item = ({ name, text }: { name: string; text: string }): string =>
    `'${name.replaceAll(':', '\\:')}:${text.replaceAll("'", "'\\''")}'`;
  const cases = places.map(
    ({ commands, options, path }) =>
      `    "${path}")\n      found=(${commands.map(item).join(' ')})\n      flags=(${options.map(item).join(' ')})\n      ;;`,
  );
  return `#compdef holdfast
# zsh completion of holdfast: holdfast completion zsh > "\${fpath[1]}/_holdfast"
_holdfast() {
  local place="" word
  local -a found flags
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$place $word" in
      ${pathsOf(places).join('|')}) place="$place $word" ;;
    esac
  done
  case "$place" in
${cases.join('\n')}
  esac
  if [[ "\${words[CURRENT]}" == -* ]]; then
    _describe -o option flags
  elif (( \${#found} )); then
    _describe command found
  else
    _files
  fi
}
if [[ "\${funcstack[1]}" == "_holdfast" ]]; then
  _holdfast "$@"
else
  compdef _holdfast holdfast
fi
`;
}

function fishScript(places: readonly Place[]): string {
  const text = (said: string): string => `'${said.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const lines = places.flatMap(({ commands, options, path }) => {
    const condition = `-n ${text(`__holdfast_is_at "${path}"`)}`;
    return [
      ...commands.map((each) => `complete -c holdfast ${condition} -f -a ${each.name} -d ${text(each.text)}`),
      ...options.map(
        (each) =>
          `complete -c holdfast ${condition} -l ${each.name.slice(2)}${each.takesValue ? ' -r' : ''} -d ${text(each.text)}`,
      ),
    ];
  });
  return `# fish completion of holdfast: holdfast completion fish | source
function __holdfast_is_at
  set -l place ""
  for word in (commandline -opc)[2..-1]
    switch "$place $word"
      case ${pathsOf(places).join(' ')}
        set place "$place $word"
    end
  end
  test "$place" = "$argv[1]"
end
${lines.join('\n')}
`;
}
