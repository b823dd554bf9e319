import type { ReactNode } from 'react';
import styles from './badge.module.css';

export type Tone = 'neutral' | 'accent' | 'success' | 'failure' | 'running' | 'warning';

/** A label with a status color. The icon or the text conveys the same as the color. */
export function Badge({
  children,
  icon,
  isSoft = true,
  title,
  tone = 'neutral',
}: {
  readonly children: ReactNode;
  readonly icon?: ReactNode;
  /** Whether it has a background; badges beside other text have none. */
  readonly isSoft?: boolean;
  readonly title?: string | undefined;
  readonly tone?: Tone;
}) {
  return (
    <span className={`${styles['badge']} ${styles[tone]} ${isSoft ? styles['soft'] : ''}`} title={title}>
      {icon}
      <span className={styles['text']}>{children}</span>
    </span>
  );
}

/** A name and a value that a user has set, such as a tag. */
export function Tag({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <span className={styles['tag']} title={`${name}: ${value}`}>
      <span className={styles['tagName']}>{name}</span>
      {value === '' ? null : <span className={styles['tagValue']}>{value}</span>}
    </span>
  );
}
