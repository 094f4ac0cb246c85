export type { ConfigOptions, LimitInput, PolicyInput, RuleInput } from './config/define-config.js'
export { defineConfig } from './config/define-config.js'
export { describeValue } from './config/describe-value.js'
export type { Upstream } from './config/file/upstream.js'
export { parseUpstream } from './config/file/upstream.js'
export { loadConfig } from './config/load-config.js'
export { nearestName } from './config/nearest-name.js'
export { parseConfig } from './config/parse-config.js'
export type { ConfigProblem } from './config/problem.js'
export { ConfigError } from './config/problem.js'
export { configSchema } from './config/schema.js'
export type { Environment, Settings } from './config/settings.js'
export { defaultPolicy, loadSettings, withSettings } from './config/settings.js'
export type { WatchedConfig, WatchOptions } from './config/watch-config.js'
export { watchConfig } from './config/watch-config.js'
export type {
  Charge,
  Config,
  CostConfig,
  Enforcement,
  GlobalConfig,
  HeaderStyleName,
  Levels,
  MatchConfig,
  Mode,
  PolicyConfig,
  RuleConfig,
  SkipConfig,
  StoreFailure,
} from './policy/config.js'
