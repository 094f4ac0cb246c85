import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type ArgumentsHost,
  applyDecorators,
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
  UseFilters,
  UseGuards,
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
import type { MaybePromise } from '../store/store.js'
import type { Enforce, Framework, Outcome, Rejected } from './enforce.js'
import { framework as onExpress } from './express.js'
import { applyOutcome as applyToFastify, framework as onFastify } from './fastify.js'
import { isInline } from './inline-limit.js'
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
 * Sets the limit of a controller or one of its methods: a limit in one line, which needs no module; options that replace
 * the module's; or `false`.
 *
 * @example
 * @RateLimit({ limit: 3, window: '1m' })
 * @example
 * @RateLimit({ policy: 'login' })
 */
export function RateLimit(own: OwnLimit<ExecutionContext>): MethodDecorator & ClassDecorator {
  const set = SetMetadata(OWN_LIMIT, own)
  if (own === false || !isInline(own)) return set
  return applyDecorators(set, UseGuards(new OwnLimitGuard()), UseFilters(RateLimitFilter))
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

/** Requests that the guard of a module has decided. */
const decided = new WeakSet<object>()

/** Admits requests of HTTP controllers that their limits have room for; denies others with `RateLimitException`. */
export class RateLimitGuard implements CanActivate, OnModuleInit {
  private readonly enforceOf: (
    own: OwnLimit<ExecutionContext> | undefined,
    place: string,
  ) => Enforce<ExecutionContext>

  /** Without options, only routes with a decorator of their own are limited. */
  constructor(
    options?: NestOptions<string, string>,
    private readonly discovery?: DiscoveryService,
  ) {
    this.enforceOf = createOwnLimits(options as AnyOptions<ExecutionContext> | undefined, framework)
  }

  /** Validates decorators when the app starts, not when a route is first requested. */
  onModuleInit(): void {
    for (const { metatype } of this.discovery?.getControllers() ?? []) {
      if (typeof metatype !== 'function') continue
      this.enforceOf(reflector.get(OWN_LIMIT, metatype), metatype.name)
      for (const name of new MetadataScanner().getAllMethodNames(metatype.prototype))
        this.enforceOf(reflector.get(OWN_LIMIT, metatype.prototype[name]), `${metatype.name}.${name}`)
    }
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (context.getType() !== 'http') return true
    decided.add(framework.origin(context))
    const [method, controller] = [context.getHandler(), context.getClass()]
    const ofMethod = reflector.get(OWN_LIMIT, method)
    const outcome = await (ofMethod === undefined
      ? this.enforceOf(reflector.get(OWN_LIMIT, controller), controller.name)
      : this.enforceOf(ofMethod, `${controller.name}.${method.name}`))(context)
    if (!outcome.allowed) throw new RateLimitException(outcome)
    applyOutcome(context, outcome)
    return true
  }
}

/** The guard of a limit in one line. That of a module comes first, and decides by the same decorators. */
class OwnLimitGuard extends RateLimitGuard {
  override async canActivate(context: ExecutionContext): Promise<boolean> {
    if (context.getType() === 'http' && decided.has(framework.origin(context))) return true
    return super.canActivate(context)
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
  readonly useFactory: (...injected: never[]) => MaybePromise<NestOptions<PolicyName, TierName> | undefined>
}

const OPTIONS = Symbol('headgate.options')

/**
 * Limits every route of a Nest app, through a guard; without options, the routes that have a decorator.
 *
 * @example
 * @Module({ imports: [RateLimitModule.forRoot({ limiter, policy: 'api' })] })
 */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest knows a module by its class
export class RateLimitModule {
  static forRoot<PolicyName extends string, TierName extends string>(
    options?: NestOptions<PolicyName, TierName>,
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
