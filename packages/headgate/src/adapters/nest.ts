import { type CanActivate, type ExecutionContext, type OnModuleInit, SetMetadata } from '@nestjs/common'
import { type DiscoveryService, MetadataScanner, Reflector } from '@nestjs/core'
import type { Enforce, Framework } from './enforce.js'
import { framework as onExpress } from './express.js'
import { framework as onFastify } from './fastify.js'
import { applyOutcome, isFastify, RateLimitException, requestOf } from './nest-answers.js'
import type { AnyOptions, RateLimitOptions } from './options.js'
import { createOwnLimits, type OwnLimit } from './own-limits.js'

export type NestOptions<PolicyName extends string, TierName extends string> = RateLimitOptions<
  ExecutionContext,
  PolicyName,
  TierName
>

const OWN_LIMIT = 'headgate.rate-limit'
const reflector = new Reflector()

/**
 * Sets the limit of a controller or one of its methods: options that replace the module's, or `false`.
 *
 * @example
 * @RateLimit({ policy: 'login' })
 */
export function RateLimit(own: OwnLimit<ExecutionContext>): MethodDecorator & ClassDecorator {
  return SetMetadata(OWN_LIMIT, own)
}

const framework: Framework<ExecutionContext> = {
  knowsPeer: true,
  read(context) {
    const request = requestOf(context)
    return isFastify(request) ? onFastify.read(request) : onExpress.read(request)
  },
  origin(context) {
    const request = requestOf(context)
    return isFastify(request) ? onFastify.origin(request) : onExpress.origin(request)
  },
}

/** Admits requests of HTTP controllers that their limits have room for; denies others with `RateLimitException`. */
export class RateLimitGuard implements CanActivate, OnModuleInit {
  private readonly enforceOf: (own: OwnLimit<ExecutionContext> | undefined) => Enforce<ExecutionContext>

  constructor(
    options: NestOptions<string, string>,
    private readonly discovery?: DiscoveryService,
  ) {
    this.enforceOf = createOwnLimits(options as AnyOptions<ExecutionContext>, framework)
  }

  /** Validates decorators when the app starts, not when a route is first requested. */
  onModuleInit(): void {
    for (const { metatype } of this.discovery?.getControllers() ?? []) {
      if (typeof metatype !== 'function') continue
      this.enforceOf(reflector.get(OWN_LIMIT, metatype))
      for (const name of new MetadataScanner().getAllMethodNames(metatype.prototype))
        this.enforceOf(reflector.get(OWN_LIMIT, metatype.prototype[name]))
    }
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (context.getType() !== 'http') return true
    const own = reflector.getAllAndOverride(OWN_LIMIT, [context.getHandler(), context.getClass()])
    const outcome = await this.enforceOf(own)(context)
    if (!outcome.allowed) throw new RateLimitException(outcome)
    applyOutcome(context, outcome)
    return true
  }
}
