import { Link, type LinkProps, useLocation } from '@tanstack/react-router';
import { Fragment, type ReactNode, useEffect, useRef } from 'react';
import styles from './section-layout.module.css';

export interface SectionLink {
  readonly name: string;
  /** Links of a group are consecutive, below its name. */
  readonly group?: string;
  readonly link: Pick<LinkProps, 'to' | 'params'>;
}

/** Links are beside the page, or above it on phones. */
export function SectionLayout({
  children,
  isReady = true,
  label,
  links,
}: {
  readonly label: string;
  readonly links: readonly SectionLink[];
  /** False: the links take up space but are invisible. */
  readonly isReady?: boolean;
  readonly children: ReactNode;
}) {
  const nav = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  // On phones the links are a row that is wider than the screen.
  // biome-ignore lint/correctness/useExhaustiveDependencies: each page has another current link.
  useEffect(() => {
    nav.current?.querySelector('[aria-current="page"]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [pathname, links.length]);
  return (
    <div className={styles['layout']}>
      <nav
        ref={nav}
        className={isReady ? styles['links'] : `${styles['links']} ${styles['unknown']}`}
        aria-label={label}
      >
        {links.map(({ group, link, name }, at) => (
          <Fragment key={name}>
            {group === undefined || group === links[at - 1]?.group ? null : (
              <span className={styles['group']} aria-hidden="true">
                {group}
              </span>
            )}
            <Link {...link} className={styles['link']} activeOptions={{ includeSearch: false }}>
              {name}
            </Link>
          </Fragment>
        ))}
      </nav>
      <div className={styles['content']}>{children}</div>
    </div>
  );
}
