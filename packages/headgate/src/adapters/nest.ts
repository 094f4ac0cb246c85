import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type ArgumentsHost,
  type CanActivate,
  Catch,
  type DynamicModule,
  type ExceptionFilter,
  type ExecutionContext,
  HttpException,
  type InjectionToken,
  Module,
  type ModuleMetadata,
  type OnModuleInit,
  SetMetadata,
} from '@nestjs/common'
import {
  APP_FILTER,
  APP_GUARD,
  DiscoveryModule,
  DiscoveryService,
  MetadataScanner,
  Reflector,
} from '@nestjs/core'
import type { Request } from 'express'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Enforce, Framework, Outcome, Rejected } from './enforce.js'
import { framework as onExpress } from './express.js'
import { applyOutcome as applyToFastify, framework as onFastify } from './fastify.js'
import { applyOutcome as applyToNode } from './node.js'
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

/**
 * Thrown for a rejected request. Carries everything `RateLimitFilter` answers; its response is the problem of the
 * denial.
 */
export class RateLimitException extends HttpException {
  constructor(readonly rejection: Rejected) {
    super(rejection.body, rejection.status)
  }
}

/** Answers rejections as every adapter does. A filter of the app's own for `RateLimitException` takes precedence. */
export class RateLimitFilter implements ExceptionFilter<RateLimitException> {
  catch({ rejection }: RateLimitException, host: ArgumentsHost): void {
    applyOutcome(host, rejection)
  }
}
Catch(RateLimitException)(RateLimitFilter)

/** Writes headers, or a whole rejection, on either platform. */
function applyOutcome(host: ArgumentsHost, outcome: Outcome): void {
  const request = requestOf(host)
  const response = host.switchToHttp().getResponse<ServerResponse | FastifyReply>()
  if (isFastify(request)) applyToFastify(outcome, request, response as FastifyReply, goOn)
  else applyToNode(outcome, request, response as ServerResponse, goOn)
}

/** Nest continues by itself after the guard returns. */
function goOn(): void {}

function requestOf(host: ArgumentsHost): Request | FastifyRequest {
  return host.switchToHttp().getRequest()
}

function isFastify(request: IncomingMessage | FastifyRequest): request is FastifyRequest {
  return 'raw' in request
}

/** Creates the options from providers that Nest injects. */
export interface AsyncNestOptions<PolicyName extends string, TierName extends string>
  extends Pick<ModuleMetadata, 'imports'> {
  readonly inject?: InjectionToken[]
  readonly useFactory: (
    ...injected: never[]
  ) => NestOptions<PolicyName, TierName> | Promise<NestOptions<PolicyName, TierName>>
}

const OPTIONS = Symbol('headgate.options')

/**
 * Limits every route of a Nest app, through a guard.
 *
 * @example
 * @Module({ imports: [RateLimitModule.forRoot({ limiter, policy: 'api' })] })
 */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest knows a module by its class
export class RateLimitModule {
  static forRoot<PolicyName extends string, TierName extends string>(
    options: NestOptions<PolicyName, TierName>,
  ): DynamicModule {
    return RateLimitModule.forRootAsync({ useFactory: () => options })
  }

  static forRootAsync<PolicyName extends string, TierName extends string>({
    imports = [],
    inject = [],
    useFactory,
  }: AsyncNestOptions<PolicyName, TierName>): DynamicModule {
    return {
      module: RateLimitModule,
      imports: [DiscoveryModule, ...imports],
      providers: [
        { provide: OPTIONS, inject, useFactory },
        {
          provide: APP_GUARD,
          inject: [OPTIONS, DiscoveryService],
          useFactory: (options, discovery) => new RateLimitGuard(options, discovery),
        },
        { provide: APP_FILTER, useClass: RateLimitFilter },
      ],
    }
  }
}
Module({})(RateLimitModule)
