import { Link, type LinkProps } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef } from 'react';
import { numberLocale } from './locale.ts';
import styles from './tabs.module.css';

/** The selected view is in the URL. */
export function Tabs({ children, label }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <nav className={styles['tabs']} aria-label={label}>
      {children}
    </nav>
  );
}

export function Tab({
  children,
  count,
  isChosen,
  ...link
}: LinkProps & { readonly isChosen: boolean; readonly children: ReactNode; readonly count?: number | undefined }) {
  const tab = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (isChosen && tab.current) showInBar(tab.current);
  }, [isChosen]);
  return (
    // Without `exact`, the link without a search would be current on every tab.
    <Link
      {...link}
      ref={tab}
      className={styles['tab']}
      aria-current={isChosen ? 'page' : undefined}
      activeOptions={{ exact: true }}
      activeProps={{}}
    >
      {children}
      {count === undefined ? null : <span className={styles['count']}>{count.toLocaleString(numberLocale)}</span>}
    </Link>
  );
}

/** On phones the bar is wider than the page. */
function showInBar(tab: HTMLElement): void {
  const bar = tab.parentElement;
  if (!bar) return;
  const bounds = tab.getBoundingClientRect();
  const shown = bar.getBoundingClientRect();
  if (bounds.left < shown.left || bounds.right > shown.right) bar.scrollLeft += bounds.left - shown.left;
}
