import type { ReactNode } from 'react';
import styles from './badge.module.css';

export type Tone = 'neutral' | 'accent' | 'success' | 'failure' | 'running' | 'warning';

/** The icon or the text conveys the same as the color. */
export function Badge({
  children,
  icon,
  isSoft = true,
  title,
  tone = 'neutral',
}: {
  readonly children: ReactNode;
  readonly icon?: ReactNode;
  /** Badges beside other text have no background. */
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

export function Tag({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <span className={styles['tag']} title={`${name}: ${value}`}>
      <span className={styles['tagName']}>{name}</span>
      {value === '' ? null : <span className={styles['tagValue']}>{value}</span>}
    </span>
  );
}
