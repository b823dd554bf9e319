import styles from './segments.module.css';

export function Segments<Value extends string | undefined>({
  label,
  onChange,
  options,
  value,
}: {
  readonly label: string;
  readonly value: Value;
  readonly options: readonly {
    readonly value: Value;
    readonly label: string;
    /** Why the view cannot be chosen. */
    readonly why?: string | undefined;
  }[];
  readonly onChange: (value: Value) => void;
}) {
  return (
    <fieldset className={styles['segments']} aria-label={label}>
      {options.map((option) => (
        <button
          key={option.label}
          type="button"
          className={styles['segment']}
          aria-pressed={option.value === value}
          disabled={option.why !== undefined}
          title={option.why}
          onClick={() => onChange(option.value)}
        >
          {option.label}
        </button>
      ))}
    </fieldset>
  );
}
