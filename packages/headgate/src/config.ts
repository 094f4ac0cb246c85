export type { FailureMode } from './check/check.js'
export type { ConfigIssue, ConfigWarning, ConfigWarningCode } from './config/config-error.js'
export { ConfigError, formatIssue } from './config/config-error.js'
export type {
  ConfigOptions,
  LimitInput,
  PolicyInput,
  RouteInput,
  RuleInput,
  UpstreamInput,
} from './config/define-config.js'
export { defineConfig } from './config/define-config.js'
export type { Upstream } from './config/file/upstream.js'
export { parseUpstream, upstreamOf } from './config/file/upstream.js'
export { loadConfig } from './config/load-config.js'
export { mistakeAt } from './config/mistake-at.js'
export type { ReadOptions } from './config/parse-config.js'
export { parseConfig } from './config/parse-config.js'
export { configSchema } from './config/schema.js'
export type { Environment, Settings } from './config/settings.js'
export { configWithSettings, loadSettings } from './config/settings.js'
export type { WatchedConfig, WatchOptions } from './config/watch-config.js'
export { watchConfig } from './config/watch-config.js'
export { mistakeText } from './errors/mistake.js'
export { nearestName } from './errors/nearest-name.js'
export { printable, shownName } from './errors/shown-text.js'
export type {
  Config,
  CorsConfig,
  CostConfig,
  Enforcement,
  GlobalConfig,
  HeaderStyle,
  Levels,
  Mask,
  Masks,
  MatchConfig,
  Mode,
  PolicyConfig,
  PolicyOrTier,
  RouteConfig,
  RuleConfig,
  SkipConfig,
  UpstreamConfig,
} from './policy/config.js'
export type { SourceConfig } from './subject/source-config.js'
export { perAddressOf } from './subject/source-config.js'
