const TRIES = 6
const PAUSE_MS = 3

/**
 * Sends again what a cluster refused with TRYAGAIN: while a slot moves, a script whose keys are not all on one side is
 * not run at all. That ends when the slot has moved, usually within milliseconds.
 */
export async function whileUnstable<Reply>(send: () => Promise<Reply>): Promise<Reply> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send()
    } catch (error) {
      const refused = error instanceof Error && error.message.startsWith('TRYAGAIN')
      if (!refused || attempt === TRIES) throw error
    }
    await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
  }
}
