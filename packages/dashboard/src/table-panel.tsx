import type { ComponentChildren } from 'preact'

export interface Column {
  readonly name: string
  /** Aligned by its digits. */
  readonly isNumber?: boolean
  /** Hidden where there is little room. */
  readonly isMinor?: boolean
  /** For screen readers, where the meaning is clear to those who see the table. */
  readonly isUnseen?: boolean
}

export interface TablePanelProps {
  readonly caption: string
  /** Empty for a table that explains itself. */
  readonly columns?: readonly Column[]
  /** Shown if there are no rows; null while there are some. */
  readonly empty: string | null
  readonly isWide?: boolean
  /** Whether a row becomes a list where there is little room; its cells have `data-name`. */
  readonly isStacked?: boolean
  /** Whether it is inside a panel already. */
  readonly isPlain?: boolean
  /** The rows. */
  readonly children: ComponentChildren
}

/** The frame of every table of the page. */
export function TablePanel({
  caption,
  columns = [],
  empty,
  isWide = false,
  isStacked = false,
  isPlain = false,
  children,
}: TablePanelProps) {
  return (
    <section class={isPlain ? undefined : isWide ? 'panel wide' : 'panel'}>
      <table class={isStacked ? 'stacked' : undefined}>
        <caption>{caption}</caption>
        {empty === null && columns.length > 0 && (
          <thead>
            <tr>
              {columns.map(({ name, isNumber, isMinor, isUnseen }) => (
                <th key={name} scope="col" class={classesOf({ number: isNumber, minor: isMinor })}>
                  {isUnseen ? <span class="hidden">{name}</span> : name}
                </th>
              ))}
            </tr>
          </thead>
        )}
        <tbody>{children}</tbody>
      </table>
      {empty !== null && <p class="empty">{empty}</p>}
    </section>
  )
}

function classesOf(classes: Readonly<Record<string, boolean | undefined>>): string | undefined {
  const names = Object.keys(classes).filter(name => classes[name])
  return names.length === 0 ? undefined : names.join(' ')
}
