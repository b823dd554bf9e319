import type { ReactNode } from 'react';
import { ChartFrame } from './chart-frame.tsx';
import styles from './point-chart.module.css';

export interface ChartPoint {
  readonly key: string;
  /** From 0, the left end, to 1, the right end. */
  readonly at: number;
  readonly value: number;
  /** Shown on hover. */
  readonly label: string;
  readonly tone: 'accent' | 'failure' | 'neutral' | 'warning';
}

/** The page has the same values as a table. `ends` are the labels of the left and right ends. */
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
    <ChartFrame title={title} total={total} most={most === 0 ? '' : format(most)} ends={ends}>
      <div className={styles['area']}>
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
    </ChartFrame>
  );
}
