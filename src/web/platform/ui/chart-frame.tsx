import type { ReactNode } from 'react';
import styles from './chart-frame.module.css';

/** Its title, the largest value, and the labels of both ends. The page must also show the values as text. */
export function ChartFrame({
  children,
  ends,
  foot,
  most,
  title,
  total,
}: {
  readonly title: string;
  /** The whole period in words. */
  readonly total: ReactNode;
  readonly most: string;
  readonly ends: readonly [string, string];
  readonly children: ReactNode;
  readonly foot?: ReactNode;
}) {
  return (
    <figure className={styles['chart']}>
      <figcaption className={styles['head']}>
        <span className={styles['title']}>{title}</span>
        <span className={styles['total']}>{total}</span>
      </figcaption>
      <div className={styles['plot']} aria-hidden="true">
        <span className={styles['most']}>{most}</span>
        {children}
        <div className={styles['axis']}>
          <span>{ends[0]}</span>
          <span>{ends[1]}</span>
        </div>
      </div>
      {foot}
    </figure>
  );
}
