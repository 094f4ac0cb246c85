/** What the server has counted, in the text that Prometheus reads. Labels are names of the policy file, never subjects. */
import type { GateCounts, WouldBe } from 'headgate'

/** Of the policy file: whether the last good one is in use instead of what is there now, and how often that happened. */
export interface ConfigCounts {
  readonly config: 'current' | 'stale'
  readonly refusedConfigs: number
}

export function exposition(counts: GateCounts, config: ConfigCounts): string {
  return [
    metric(
      'rate_limit_shadow_divergence_total',
      'counter',
      'Decisions of mode compare in which process and store differed.',
      [['', counts.shadowDivergence]],
    ),
    metric(
      'rate_limit_shadow_total',
      'counter',
      'What limits in shadow would have done.',
      wouldBe(counts.shadow),
    ),
    metric(
      'rate_limit_candidate_total',
      'counter',
      'What candidates would have done.',
      wouldBe(counts.candidates),
    ),
    metric('rate_limit_config_reloads_total', 'counter', 'Policy files put in force since the start.', [
      ['', counts.reloads],
    ]),
    metric('rate_limit_config_refused_total', 'counter', 'Policy files refused since the start.', [
      ['', config.refusedConfigs],
    ]),
    metric(
      'rate_limit_config_stale',
      'gauge',
      '1 while the policy file cannot be used and the last good one holds.',
      [['', config.config === 'stale' ? 1 : 0]],
    ),
  ].join('')
}

type Sample = readonly [labels: string, value: number]

function metric(name: string, type: 'counter' | 'gauge', help: string, samples: readonly Sample[]): string {
  const lines = samples.map(([labels, value]) => `${name}${labels} ${value}\n`)
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

function wouldBe(byPolicy: Readonly<Record<string, WouldBe>>): Sample[] {
  return Object.entries(byPolicy).flatMap(([policy, { wouldAllow, wouldDeny }]): Sample[] => [
    [`{policy="${policy}",would="allow"}`, wouldAllow],
    [`{policy="${policy}",would="deny"}`, wouldDeny],
  ])
}
