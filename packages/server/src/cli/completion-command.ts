/** Shell completion, generated from the commands themselves, so that new ones are completed too. */
import { Argument, type Command } from 'commander'
import type { Terminal } from './terminal.js'

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

/** The words that may follow a command: `control set` → `--on`, `--off` … */
type Words = ReadonlyMap<string, readonly string[]>

const HOW_TO = `
Examples:
  bash   headgate completion bash > /etc/bash_completion.d/headgate
  zsh    headgate completion zsh > "\${fpath[1]}/_headgate"
  fish   headgate completion fish > ~/.config/fish/completions/headgate.fish`

/** Adds `headgate completion`. */
export function addCompletionCommand(program: Command, terminal: Terminal): void {
  program
    .command('completion')
    .description('Print a script that completes commands and flags in your shell.')
    .addArgument(new Argument('<shell>', 'for which shell').choices(SHELLS))
    .allowExcessArguments(false)
    .addHelpText('after', HOW_TO)
    .action((shell: Shell) => terminal.print(SCRIPTS[shell](wordsOf(program))))
}

function wordsOf(program: Command): Words {
  const words = new Map<string, readonly string[]>()
  const collect = (command: Command, path: string): void => {
    const help = command.createHelp()
    const commands = help.visibleCommands(command).map(one => one.name())
    const flags = help.visibleOptions(command).flatMap(({ long }) => long ?? [])
    words.set(path, [...commands, ...flags])
    for (const one of command.commands) collect(one, `${path} ${one.name()}`.trim())
  }
  collect(program, '')
  return words
}

const SCRIPTS: Readonly<Record<Shell, (words: Words) => string>> = {
  bash: words => `# bash completion for headgate
_headgate() {
  local current=\${COMP_WORDS[COMP_CWORD]} path= word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) path="\${path:+$path }$word" ;; esac
  done
  while :; do
    case "$path" in
${[...words].map(([path, all]) => `      '${path}') COMPREPLY=($(compgen -W '${all.join(' ')}' -- "$current")); return ;;`).join('\n')}
    esac
    path=\${path% *}
  done
}
complete -o default -F _headgate headgate`,
  zsh: words => `#compdef headgate
_headgate() {
  local path= word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    [[ $word == -* ]] || path="\${path:+$path }$word"
  done
  while true; do
    case "$path" in
${[...words].map(([path, all]) => `      '${path}') compadd -- ${all.join(' ')}; _files; return ;;`).join('\n')}
    esac
    path=\${path% *}
  done
}
_headgate "$@"`,
  fish: words =>
    ['# fish completion for headgate', ...[...words].flatMap(([path, all]) => fishLines(path, all))].join(
      '\n',
    ),
}

function fishLines(path: string, all: readonly string[]): readonly string[] {
  const parts = path.split(' ').filter(part => part !== '')
  const condition =
    parts.length === 0
      ? '__fish_use_subcommand'
      : parts.map(part => `__fish_seen_subcommand_from ${part}`).join('; and ')
  return all.map(word =>
    word.startsWith('--')
      ? `complete -c headgate -n '${condition}' -l ${word.slice(2)}`
      : `complete -c headgate -n '${condition}' -a ${word}`,
  )
}
