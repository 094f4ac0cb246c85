import { describe, it } from 'vitest'
import { memoryStore } from '../../src/store/memory/memory-store.js'
import { storeContract } from '../../src/testing/store-contract.js'

describe('the embedded store keeps the contract', () => {
  for (const { name, run } of storeContract({ open: clock => memoryStore({ clock }), shared: false })) {
    it(name, run)
  }
})
