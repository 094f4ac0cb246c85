const kept: object[] = []

/**
 * Keeps one object of a class that is made for every request. When none is alive at a full garbage collection, V8
 * forgets the shape of the class and throws away the code it had compiled for it: the next thousands of requests then
 * take ten times as long.
 */
export function keepV8Shape(instance: object): void {
  kept.push(instance)
}
