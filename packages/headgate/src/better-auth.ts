export type { BetterAuthOptions, BetterAuthRule, BetterAuthStorage } from './adapters/better-auth.js'
export { betterAuthStorage } from './adapters/better-auth.js'
