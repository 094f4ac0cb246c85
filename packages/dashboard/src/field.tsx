export interface FieldProps {
  readonly label: string
  readonly value: string
  readonly type?: 'text' | 'number'
  readonly placeholder?: string
  /** Suggested values; others may be typed. */
  readonly choices?: readonly string[]
  readonly isRequired?: boolean
  onValue(value: string): void
}

/** A labelled input. */
export function Field({
  label,
  value,
  type = 'text',
  placeholder,
  choices,
  isRequired = true,
  onValue,
}: FieldProps) {
  const list = choices === undefined ? undefined : `choices-${label.replaceAll(' ', '-')}`
  return (
    <label>
      {label}
      <input
        type={type}
        {...(type === 'number' && { min: 0, step: 'any' })}
        required={isRequired}
        placeholder={placeholder}
        list={list}
        value={value}
        onInput={event => onValue(event.currentTarget.value)}
      />
      {choices !== undefined && (
        <datalist id={list}>
          {choices.map(choice => (
            <option key={choice} value={choice} />
          ))}
        </datalist>
      )}
    </label>
  )
}
