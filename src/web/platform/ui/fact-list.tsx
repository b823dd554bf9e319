import type { ReactNode } from 'react';
import styles from './fact-list.module.css';

export function FactList({ children }: { readonly children: ReactNode }) {
  return <dl className={styles['facts']}>{children}</dl>;
}

export function FactRow({ children, name }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div className={styles['row']}>
      <dt className={styles['name']}>{name}</dt>
      <dd className={styles['value']}>{children}</dd>
    </div>
  );
}
