import { type DynamicModule, type InjectionToken, Module, type ModuleMetadata } from '@nestjs/common'
import { APP_FILTER, APP_GUARD, DiscoveryModule, DiscoveryService } from '@nestjs/core'
import { type NestOptions, RateLimitGuard } from './nest.js'
import { RateLimitFilter } from './nest-answers.js'

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
