import type { Command, Option } from 'commander';

export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

interface CommandWords {
  /** The words after `holdfast`, each with a space before it. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly text: string }[];
  readonly options: readonly { readonly name: string; readonly text: string; readonly takesValue: boolean }[];
}

/** The script that completes the commands below `program` and their options in a shell. */
export function completionScript(program: Command, shell: Shell): string {
  const all = wordsOf(program, '');
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](all);
}

function wordsOf(command: Command, path: string): CommandWords[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command);
  const options = help.visibleOptions(command).filter(({ long }) => long !== undefined && long !== null);
  const own: CommandWords = {
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
    .flatMap((each) => wordsOf(each, `${path} ${each.name()}`));
  return [own, ...below];
}

/** Patterns of a `case` with the paths of all commands but the root. */
const pathsOf = (all: readonly CommandWords[]): string[] =>
  all.flatMap(({ path }) => (path === '' ? [] : [`"${path}"`]));

function bashScript(all: readonly CommandWords[]): string {
  const cases = all.map(
    ({ commands, options, path }) =>
      `    "${path}") words="${[...commands, ...options].map(({ name }) => name).join(' ')}" ;;`,
  );
  return `# bash completion of holdfast: source <(holdfast completion bash)
_holdfast() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" word words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
      ${pathsOf(all).join('|')}) path="$path $word" ;;
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

function zshScript(all: readonly CommandWords[]): string {
  const item = ({ name, text }: { name: string; text: string }): string =>
    `'${name.replaceAll(':', '\\:')}:${text.replaceAll("'", "'\\''")}'`;
  const cases = all.map(
    ({ commands, options, path }) =>
      `    "${path}")\n      found=(${commands.map(item).join(' ')})\n      flags=(${options.map(item).join(' ')})\n      ;;`,
  );
  return `#compdef holdfast
# zsh completion of holdfast: holdfast completion zsh > "\${fpath[1]}/_holdfast"
_holdfast() {
  local command_path="" word
  local -a found flags
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$command_path $word" in
      ${pathsOf(all).join('|')}) command_path="$command_path $word" ;;
    esac
  done
  case "$command_path" in
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

function fishScript(all: readonly CommandWords[]): string {
  const text = (said: string): string => `'${said.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const lines = all.flatMap(({ commands, options, path }) => {
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
  set -l command_path ""
  for word in (commandline -opc)[2..-1]
    switch "$command_path $word"
      case ${pathsOf(all).join(' ')}
        set command_path "$command_path $word"
    end
  end
  test "$command_path" = "$argv[1]"
end
${lines.join('\n')}
`;
}
