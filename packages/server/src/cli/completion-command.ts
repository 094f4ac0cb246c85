/** Shell completion, generated from the commands themselves, so that new ones are completed too. */
import { Argument, type Command } from 'commander'
import type { Terminal } from './terminal.js'

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]
/** Flags whose values are names in the policy file. */
const NAMED = ['--rule', '--policy', '--tier']
const POLICY_FILE = 'headgate.yaml'

/** The words that may follow a command: `control set` → `--on`, `--off` … */
type Words = ReadonlyMap<string, readonly string[]>

const HOW_TO = `
Examples:
  bash   headgate completion bash > /etc/bash_completion.d/headgate
  zsh    headgate completion zsh > "\${fpath[1]}/_headgate"
  fish   headgate completion fish > ~/.config/fish/completions/headgate.fish`

/** Adds `headgate completion`. */
export function addCompletionCommand(program: Command, terminal: Terminal): void {
  const completion = program
    .command('completion')
    .description('Print a script that completes commands, flags and their values in your shell.')
    .addArgument(new Argument('<shell>', 'for which shell').choices(SHELLS))
    .allowExcessArguments(false)
    .addHelpText('after', HOW_TO)
    .action((shell: Shell) => terminal.print(SCRIPTS[shell](wordsOf(program), valuesOf(program))))
  // The scripts ask it for the names in the policy file of the folder they are used in.
  completion
    .command('values <kind>', { hidden: true })
    .action(async (kind: string) => terminal.print((await namesFor(kind)).join('\n')))
}

async function namesFor(kind: string): Promise<readonly string[]> {
  const { loadConfig } = await import('headgate/config')
  const { rules, policies, tiers } = await loadConfig(POLICY_FILE)
  if (kind === 'rule') return rules.map(({ name }) => name).filter(name => !/\s/.test(name))
  return Object.keys(kind === 'policy' ? policies : kind === 'tier' ? tiers : {})
}

/** The values of each flag that has a list of them. */
function valuesOf(program: Command): ReadonlyMap<string, readonly string[]> {
  const values = new Map<string, readonly string[]>()
  const collect = (command: Command): void => {
    for (const { long, argChoices } of command.options) {
      if (long != null && argChoices !== undefined) values.set(long, argChoices)
    }
    command.commands.forEach(collect)
  }
  collect(program)
  return values
}

function wordsOf(program: Command): Words {
  const words = new Map<string, readonly string[]>()
  const collect = (command: Command, path: string): void => {
    const help = command.createHelp()
    const commands = help.visibleCommands(command).map(one => one.name())
    const flags = help.visibleOptions(command).flatMap(({ long }) => long ?? [])
    const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? [])
    words.set(path, [...commands, ...choices, ...flags])
    for (const one of command.commands) collect(one, `${path} ${one.name()}`.trim())
  }
  collect(program, '')
  return words
}

const SCRIPTS: Readonly<Record<Shell, (words: Words, values: Words) => string>> = {
  bash: (words, values) => `# bash completion for headgate
_headgate() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} path= word
  case "$previous" in
${[...values].map(([flag, all]) => `    ${flag}) COMPREPLY=($(compgen -W '${all.join(' ')}' -- "$current")); return ;;`).join('\n')}
    ${NAMED.join('|')}) COMPREPLY=($(compgen -W "$(headgate completion values "\${previous#--}" 2>/dev/null)" -- "$current")); return ;;
  esac
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
  zsh: (words, values) => `#compdef headgate
_headgate() {
  local path= word previous=\${words[CURRENT-1]}
  case "$previous" in
${[...values].map(([flag, all]) => `    ${flag}) compadd -- ${all.join(' ')}; return ;;`).join('\n')}
    ${NAMED.join('|')}) compadd -- \${(f)"$(headgate completion values "\${previous#--}" 2>/dev/null)"}; return ;;
  esac
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
  fish: (words, values) =>
    [
      '# fish completion for headgate',
      ...[...words].flatMap(([path, all]) => fishLines(path, all)),
      ...[...values].map(
        ([flag, all]) => `complete -c headgate -l ${flag.slice(2)} -x -a '${all.join(' ')}'`,
      ),
      ...NAMED.map(
        flag =>
          `complete -c headgate -l ${flag.slice(2)} -x -a '(headgate completion values ${flag.slice(2)} 2>/dev/null)'`,
      ),
    ].join('\n'),
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
