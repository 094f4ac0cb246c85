/**
 * Runs `work` for 0 up to `count`, a limited number at a time. Rejects with the first failure, after all have
 * ended.
 */
export async function inParallel(
  count: number,
  atOnce: number,
  work: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0
  let failure: unknown = null
  const worker = async () => {
    while (next < count && failure === null) {
      await work(next++).catch(error => {
        failure ??= error
      })
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker))
  if (failure !== null) throw failure
}
