import type { ReactNode } from 'react';
import { numberLocale } from './locale.ts';
import styles from './page.module.css';

/** `lead` is one sentence about the page's purpose. */
export function Page({
  actions,
  children,
  count,
  lead,
  title,
}: {
  readonly title: ReactNode;
  readonly children: ReactNode;
  readonly lead?: ReactNode;
  readonly count?: number | undefined;
  readonly actions?: ReactNode;
}) {
  return (
    <article className={styles['page']}>
      <header className={styles['head']}>
        <div className={styles['titles']}>
          <h1>
            {title}
            {count === undefined ? null : <span className={styles['count']}>{count.toLocaleString(numberLocale)}</span>}
          </h1>
          {lead === undefined ? null : <p className={styles['lead']}>{lead}</p>}
        </div>
        {actions === undefined ? null : <div className={styles['actions']}>{actions}</div>}
      </header>
      {children}
    </article>
  );
}

export function Section({
  actions,
  children,
  lead,
  title,
}: {
  readonly title: ReactNode;
  readonly children: ReactNode;
  readonly lead?: ReactNode;
  readonly actions?: ReactNode;
}) {
  return (
    <section className={styles['section']}>
      <header className={styles['head']}>
        <div className={styles['titles']}>
          <h2>{title}</h2>
          {lead === undefined ? null : <p className={styles['lead']}>{lead}</p>}
        </div>
        {actions === undefined ? null : <div className={styles['actions']}>{actions}</div>}
      </header>
      {children}
    </section>
  );
}

export function FilterBar({ children }: { readonly children: ReactNode }) {
  return <search className={styles['filters']}>{children}</search>;
}
