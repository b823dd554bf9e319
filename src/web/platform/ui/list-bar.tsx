import type { InputHTMLAttributes, ReactNode, SelectHTMLAttributes } from 'react';
import styles from './list-bar.module.css';

/** Scrolls with its page, below its filters. `facts` are counts, on the right. */
export function ListSection({
  bar,
  children,
  facts,
  label,
}: {
  readonly label: string;
  readonly bar: ReactNode;
  readonly facts?: ReactNode;
  readonly children: ReactNode;
}) {
  return (
    <section className={styles['section']} aria-label={label}>
      <div className={styles['bar']}>
        {bar}
        {facts === undefined ? null : <span className={styles['facts']}>{facts}</span>}
      </div>
      {children}
    </section>
  );
}

export function ListSearch({
  label,
  onText,
  value,
  ...rest
}: Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange'> & {
  readonly label: string;
  readonly value: string;
  readonly onText: (text: string) => void;
}) {
  return (
    <input
      {...rest}
      type="search"
      className={`${styles['input']} ${styles['search']}`}
      aria-label={label}
      value={value}
      onChange={({ target }) => onText(target.value)}
    />
  );
}

export function ListSelect({ label, ...rest }: SelectHTMLAttributes<HTMLSelectElement> & { readonly label: string }) {
  return <select {...rest} className={styles['input']} aria-label={label} />;
}

/** A switch for additional items of a list. */
export function ListToggle({
  children,
  isOn,
  onChange,
}: {
  readonly children: ReactNode;
  readonly isOn: boolean;
  readonly onChange: (isOn: boolean) => void;
}) {
  return (
    <label className={styles['toggle']}>
      <input type="checkbox" checked={isOn} onChange={({ target }) => onChange(target.checked)} />
      {children}
    </label>
  );
}
