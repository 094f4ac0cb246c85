/** A table of who may import whom, held against the sources. */
import { dirname, join, sep } from 'node:path'
import { importsOf } from './sources.js'

export interface Row {
  /** The things in it, in a few words. */
  readonly holds: string
  /** The stage it is a part of: whoever may import that may import this. */
  readonly partOf?: string
  /** Stages whose values and types may be imported. A stage may always import itself. */
  readonly may?: readonly string[]
  /** Stages of which only types may be imported. */
  readonly types?: readonly string[]
  /** Packages whose types may be used; `*` is any. */
  readonly packageTypes?: readonly string[]
  /** Packages that may be used at run time. */
  readonly packages?: readonly string[]
}

export class ImportTable {
  constructor(
    private readonly rows: Readonly<Record<string, Row>>,
    /** Files that may import anything, such as those a package exports. */
    private readonly mayAll: ReadonlySet<string>,
  ) {}

  /** Says what a file does that the table does not allow. */
  denialsOf(file: string, source: string): string[] {
    if (this.mayAll.has(file)) return []
    const stage = this.stageOf(file)
    if (stage === undefined) return [`${file} is in no stage: give its folder a row in the table`]
    return importsOf(source).flatMap(({ specifier, typeOnly }) => {
      const complaint = `${file} imports ${typeOnly ? 'types of ' : ''}${specifier}`
      if (!specifier.startsWith('.')) return this.mayUsePackage(stage, specifier, typeOnly) ? [] : [complaint]
      const target = join(dirname(file), specifier).split(sep).join('/').replace(/\.js$/, '.ts')
      return this.mayUseStage(stage, this.stageOf(target), typeOnly) ? [] : [complaint]
    })
  }

  /** Rows of which the table does not need all: what they may import and do not. */
  unusedOf(sources: readonly { file: string; source: string }[]): string[] {
    return Object.entries(this.rows).flatMap(([stage, row]) => {
      const used = new Set(
        sources
          .filter(({ file }) => this.stageOf(file) === stage)
          .flatMap(({ file, source }) =>
            importsOf(source).map(({ specifier }) => {
              if (!specifier.startsWith('.')) return specifier
              return this.stageOf(join(dirname(file), specifier).split(sep).join('/').replace(/\.js$/, '.ts'))
            }),
          ),
      )
      return [...(row.may ?? []), ...(row.types ?? [])]
        .filter(name => !used.has(name))
        .map(name => `${stage} need not import ${name}`)
    })
  }

  /** The row a file belongs to: the longest that is its folder or its name. */
  private stageOf(file: string): string | undefined {
    const path = file.replace(/\.ts$/, '')
    return Object.keys(this.rows)
      .filter(stage => path === stage || path.startsWith(`${stage}/`))
      .toSorted((one, other) => other.length - one.length)[0]
  }

  private mayUseStage(stage: string, target: string | undefined, typeOnly: boolean): boolean {
    const row = this.rows[stage] as Row
    if (target === undefined) return false
    const targets = [target, this.rows[target]?.partOf ?? target]
    return targets.some(
      one => one === stage || row.may?.includes(one) || (typeOnly && row.types?.includes(one)) || false,
    )
  }

  private mayUsePackage(stage: string, specifier: string, typeOnly: boolean): boolean {
    const row = this.rows[stage] as Row
    const names = (list: readonly string[] = []) =>
      list.some(
        name => name === '*' || name === specifier || (name === 'node:*' && specifier.startsWith('node:')),
      )
    return names(row.packages) || (typeOnly && names(row.packageTypes))
  }
}
