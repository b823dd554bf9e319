import type { ReactNode } from 'react';
import { Skeleton } from './skeleton.tsx';
import styles from './stat-tiles.module.css';

export interface StatTile {
  readonly name: string;
  /** Undefined while it is loading. */
  readonly value: ReactNode;
  readonly note?: ReactNode;
  /** Set if the value needs attention. */
  readonly tone?: 'failure' | 'warning' | undefined;
}

export function StatTiles({ statistics }: { readonly statistics: readonly StatTile[] }) {
  return (
    <dl className={styles['tiles']}>
      {statistics.map(({ name, note, tone, value }) => (
        <div key={name} className={styles['tile']}>
          <dt className={styles['name']}>{name}</dt>
          <dd className={`${styles['value']} ${tone === undefined ? '' : styles[tone]}`}>
            {value === undefined ? <Skeleton width={64} height={22} /> : value}
          </dd>
          {note === undefined ? null : <dd className={styles['note']}>{note}</dd>}
        </div>
      ))}
    </dl>
  );
}
