/** Groups items by name, keeping the order of both. */
export function groupBy<Item>(items: Iterable<Item>, nameOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const name = nameOf(item)
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [item])
    else group.push(item)
  }
  return groups
}
