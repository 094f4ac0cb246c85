import type { DecisionSource } from '../../src/check/check.ts'

type Changes<Changed> = Partial<Omit<Changed, 'source'>> & { readonly source?: DecisionSource }

/** A store or limiter with some of its methods and properties replaced. */
export function changed<Changed extends object>(object: Changed, changes: Changes<Changed>): Changed {
  return new Proxy(object, {
    get(target, name) {
      if (Object.hasOwn(changes, name)) return Reflect.get(changes, name)
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
    has: (target, name) => name in changes || name in target,
  })
}
