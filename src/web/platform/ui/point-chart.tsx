import type { ReactNode } from 'react';
import styles from './point-chart.module.css';

export interface ChartPoint {
  readonly key: string;
  /** From 0, the left end, to 1. */
  readonly at: number;
  readonly value: number;
  /** Shown on hover. */
  readonly label: string;
  readonly tone: 'accent' | 'failure' | 'neutral' | 'warning';
}

/** Values over time as points. The page has the same values as a table. `ends`: what the left and the right end are. */
export function PointChart({
  ends,
  format,
  hasLine = false,
  points,
  title,
  total,
}: {
  readonly title: string;
  readonly total: ReactNode;
  readonly points: readonly ChartPoint[];
  readonly ends: readonly [string, string];
  readonly format: (value: number) => string;
  readonly hasLine?: boolean;
}) {
  const most = Math.max(...points.map(({ value }) => value), 0);
  const heightOf = (value: number): number => (most === 0 ? 0 : (100 * value) / most);
  return (
    <figure className={styles['chart']}>
      <figcaption className={styles['head']}>
        <span className={styles['title']}>{title}</span>
        <span className={styles['total']}>{total}</span>
      </figcaption>
      <div aria-hidden="true">
        <div className={styles['plot']}>
          <span className={styles['most']}>{most === 0 ? '' : format(most)}</span>
          <div className={styles['points']}>
            {hasLine ? (
              <svg aria-hidden="true" className={styles['line']} viewBox="0 0 100 100" preserveAspectRatio="none">
                <polyline points={points.map(({ at, value }) => `${100 * at},${100 - heightOf(value)}`).join(' ')} />
              </svg>
            ) : null}
            {points.map(({ at, key, label, tone, value }) => (
              <span
                key={key}
                className={`${styles['point']} ${styles[tone]}`}
                style={{ left: `${100 * at}%`, bottom: `${heightOf(value)}%` }}
                title={label}
              />
            ))}
          </div>
        </div>
        <div className={styles['axis']}>
          <span>{ends[0]}</span>
          <span>{ends[1]}</span>
        </div>
      </div>
    </figure>
  );
}
