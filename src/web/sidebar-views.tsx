import { Link } from '@tanstack/react-router';
import { Bookmark } from 'lucide-react';
import { useSavedViews, useViewOwners, viewLink } from './platform/app/views/saved-views.ts';
import { sidebarTexts } from './platform/texts.tsx';
import { CutName } from './platform/ui/cut-name.tsx';
import styles from './sidebar.module.css';

export function PinnedViews() {
  const owners = useViewOwners();
  const pinned = useSavedViews(owners).items?.filter(({ isPinned }) => isPinned) ?? [];
  if (pinned.length === 0) return null;
  return (
    <nav aria-label={sidebarTexts.views} className={styles['favorites']}>
      <h2 className={styles['title']}>{sidebarTexts.views}</h2>
      <ul className={styles['links']}>
        {pinned.map((view) => (
          <li key={view.id}>
            <Link
              {...viewLink(view)}
              className={styles['link']}
              activeOptions={{ exact: true }}
              title={owners.length > 1 ? sidebarTexts.viewOf(view.name, view.organization) : view.name}
            >
              <Bookmark size={14} aria-hidden="true" />
              <CutName text={view.name} />
              {owners.length > 1 ? <span className="unseen">, {view.organization}</span> : null}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}
