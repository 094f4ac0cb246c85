import { expect, it } from 'vitest'
import { BoundedMap } from '../../check/bounded-map.js'
import { CheckMap } from './check-map.js'

const at = (subject: string, scope = 'global') => ({ subject, scope, name: 'api' })

it('the map never has more values than it may, whatever they are called', () => {
  const byCheck = new CheckMap<number>(100)
  const byKey = new BoundedMap<number>(100)
  for (let index = 0; index < 10_000; index++) {
    byCheck.set(at(`user:${index}`, `scope${index % 7}`), index)
    byKey.set(`user:${index}`, index)
    expect(byCheck.size).toBeLessThanOrEqual(100)
    expect(byKey.size).toBeLessThanOrEqual(100)
  }
})

it('the map keeps what is asked for, and what was added last', () => {
  const byCheck = new CheckMap<number>(100)
  const byKey = new BoundedMap<number>(100)
  byCheck.set(at('user:asked'), -1)
  byKey.set('user:asked', -1)
  for (let index = 0; index < 1_000; index++) {
    byCheck.set(at(`user:${index}`), index)
    byKey.set(`user:${index}`, index)
    expect(byCheck.get(at('user:asked'))).toBe(-1)
    expect(byKey.get('user:asked')).toBe(-1)
  }
  for (let index = 960; index < 1_000; index++) {
    expect(byCheck.get(at(`user:${index}`))).toBe(index)
    expect(byKey.get(`user:${index}`)).toBe(index)
  }
})

it('the map tells of each value that had to go once, and of none that was replaced or deleted', () => {
  const dropped: string[] = []
  const map = new CheckMap<string>(4, value => dropped.push(value))
  for (const name of ['a', 'b', 'c', 'd']) map.set(at(name), name)
  map.delete(at('b'))
  map.set(at('a'), 'a2')
  for (const name of ['e', 'f', 'g', 'h']) map.set(at(name), name)
  const kept = [...map.values()]
  expect([...kept, ...dropped].toSorted()).toEqual(['a2', 'c', 'd', 'e', 'f', 'g', 'h'])
  expect(kept.length).toBeLessThanOrEqual(4)
})
