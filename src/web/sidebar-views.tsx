import { Link } from '@tanstack/react-router';
import { Bookmark } from 'lucide-react';
import { useSavedViews, useViewOwners, viewLink } from './platform/app/views/saved-views.ts';
import { CutName } from './platform/ui/cut-name.tsx';
import styles from './sidebar.module.css';

/** The views that the user has pinned. */
export function PinnedViews() {
  const owners = useViewOwners();
  const pinned = useSavedViews(owners).items?.filter(({ isPinned }) => isPinned) ?? [];
  if (pinned.length === 0) return null;
  return (
    <nav aria-label="Views" className={styles['favourites']}>
      <h2 className={styles['title']}>Views</h2>
      <ul className={styles['links']}>
        {pinned.map((view) => (
          <li key={view.id}>
            <Link
              {...viewLink(view)}
              className={styles['link']}
              activeOptions={{ exact: true }}
              title={owners.length > 1 ? `${view.name}, ${view.organization}` : view.name}
            >
              <Bookmark size={14} aria-hidden="true" />
              <CutName text={view.name} />
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}
