import { describe, it } from 'vitest'
import { adapterContract } from '../../src/testing/index.ts'
import { ADAPTERS } from './apps.ts'

describe.each(Object.entries(ADAPTERS))('the adapter of %s', (_, adapter) => {
  for (const { name, run } of adapterContract(adapter)) it(name, run)
})
