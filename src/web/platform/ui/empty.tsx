import type { ReactNode } from 'react';
import styles from './empty.module.css';

/** Names the reason, and what to do next. */
export function Empty({
  children,
  icon,
  isPage = false,
  isProblem = false,
  title,
}: {
  readonly title: string;
  readonly children?: ReactNode;
  readonly icon?: ReactNode;
  /** The page has no other content, so this is its title. */
  readonly isPage?: boolean;
  /** Announced by screen readers. */
  readonly isProblem?: boolean;
}) {
  return (
    <div
      className={`${styles['empty']} ${isPage ? styles['page'] : ''}`}
      role={isProblem ? 'alert' : undefined}
      data-problem-page={isPage && isProblem ? '' : undefined}
    >
      {icon === undefined ? null : <div className={styles['icon']}>{icon}</div>}
      {isPage ? <h1>{title}</h1> : <h2>{title}</h2>}
      <div className={styles['body']}>{children}</div>
    </div>
  );
}
