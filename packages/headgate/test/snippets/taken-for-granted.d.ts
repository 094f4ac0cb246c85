/** The names that pages of the documentation assume: from earlier parts of the page, or the reader's own. */
import type { ServerResponse } from 'node:http'
import type * as nest from '@nestjs/common'
import type * as trpc from '@trpc/server'
import type * as trpcStandalone from '@trpc/server/adapters/standalone'
import type * as headgate from 'headgate'
import type * as headgateExpress from 'headgate/express'
import type * as headgateRedis from 'headgate/redis'
import type * as headgateTesting from 'headgate/testing'
import type * as ioredis from 'ioredis'
import type * as redis from 'redis'
import type * as vitest from 'vitest'

/** Something of the reader's that the page does not specify. */
// biome-ignore lint/suspicious/noExplicitAny: that is what it is
type Anything = any

declare module 'express-serve-static-core' {
  interface Request {
    /** As a login middleware would leave it. */
    user?: { id: string; organisation: string }
  }
}

declare global {
  // The library, where a page continues from an earlier import.
  const createLimiter: typeof headgate.createLimiter
  const slidingWindowLog: typeof headgate.slidingWindowLog
  const slidingWindowCounter: typeof headgate.slidingWindowCounter
  const tokenBucket: typeof headgate.tokenBucket
  const rateLimit: typeof headgateExpress.rateLimit
  const redisStore: typeof headgateRedis.redisStore
  const storeContract: typeof headgateTesting.storeContract
  type HeadgateEvent = headgate.HeadgateEvent
  const limiter: headgate.RuleLimiter<'api' | 'login' | 'pages' | 'member' | 'organisation', 'free' | 'pro'>
  const config: headgate.Config
  const policies: { readonly api: headgate.Limit }
  const subject: () => `user:${string}`
  const myStore: (options: { readonly clock: headgate.Clock }) => headgate.Store

  // Other people's libraries.
  const client: redis.RedisClientType
  const createClient: typeof redis.createClient
  const Redis: typeof ioredis.Redis
  const express: Anything
  const pino: () => headgate.Logger
  const createServer: Anything
  const createHTTPServer: typeof trpcStandalone.createHTTPServer
  const initTRPC: typeof trpc.initTRPC
  const Module: typeof nest.Module
  const Controller: typeof nest.Controller
  const Get: typeof nest.Get
  const Post: typeof nest.Post
  const it: typeof vitest.it

  // The reader's own.
  const app: Anything
  const router: Anything
  const login: Anything
  const health: Anything
  const listen: Anything
  const metrics: Anything
  const sockets: Anything
  const plans: Anything
  const accounts: Anything
  const sessionOf: Anything
  const createContext: Anything
  const getStructure: (request: Request) => Promise<Response>
  const addStructure: (request: Request) => Promise<Response>
  const checkPassword: (form: FormData) => Promise<string>
  const response: ServerResponse
  const req: Anything
  const url: string
  const token: string
  const ca: string
  interface Context {
    readonly userId: string
  }
}
