const kept: object[] = []

/**
 * Keeps one object of a class that is instantiated for every request. If none is alive at a full garbage
 * collection, V8 drops the shape of the class and the code compiled for it, and the next thousands of requests take
 * ten times as long.
 */
export function keepV8Shape(instance: object): void {
  kept.push(instance)
}
