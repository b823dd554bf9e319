import { Link } from '@tanstack/react-router';
import { Bookmark } from 'lucide-react';
import { useSavedViews, useViewOwner, viewLink } from './platform/app/views/saved-views.ts';
import { CutName } from './platform/ui/cut-name.tsx';
import styles from './sidebar.module.css';

/** The views that the user has pinned. */
export function PinnedViews() {
  const organization = useViewOwner();
  const pinned = useSavedViews(organization).data?.items.filter(({ isPinned }) => isPinned) ?? [];
  if (organization === undefined || pinned.length === 0) return null;
  return (
    <nav aria-label="Views" className={styles['favourites']}>
      <h2 className={styles['title']}>Views</h2>
      <ul className={styles['links']}>
        {pinned.map((view) => (
          <li key={view.id}>
            <Link
              {...viewLink(organization, view)}
              className={styles['link']}
              activeOptions={{ exact: true }}
              title={view.name}
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
