import { Link, type LinkProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import styles from './section-layout.module.css';

export interface SectionLink {
  readonly name: string;
  readonly link: Pick<LinkProps, 'to' | 'params'>;
}

/** Pages that belong together, with links between them: beside the page, on phones above it. */
export function SectionLayout({
  children,
  label,
  links,
}: {
  readonly label: string;
  readonly links: readonly SectionLink[];
  readonly children: ReactNode;
}) {
  return (
    <div className={styles['layout']}>
      <nav className={styles['links']} aria-label={label}>
        {links.map(({ link, name }) => (
          <Link key={name} {...link} className={styles['link']} activeOptions={{ includeSearch: false }}>
            {name}
          </Link>
        ))}
      </nav>
      <div className={styles['content']}>{children}</div>
    </div>
  );
}
