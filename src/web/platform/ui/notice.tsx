import type { ReactNode } from 'react';
import styles from './notice.module.css';

export function Notice({
  action,
  children,
  icon,
  title,
  tone,
}: {
  readonly title: ReactNode;
  readonly icon: ReactNode;
  readonly tone: 'running' | 'failure' | 'warning' | 'neutral';
  readonly children?: ReactNode;
  readonly action?: ReactNode;
}) {
  return (
    <section className={`${styles['notice']} ${styles[tone]}`}>
      <span className={styles['icon']} aria-hidden="true">
        {icon}
      </span>
      <div className={styles['body']}>
        <div className={styles['title']}>{title}</div>
        {children}
      </div>
      {action === undefined ? null : <div className={styles['action']}>{action}</div>}
    </section>
  );
}
