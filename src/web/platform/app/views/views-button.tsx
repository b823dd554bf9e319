import { Bookmark } from 'lucide-react';
import { useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { lazyPart } from '../../ui/chunks.tsx';
import type { SavedView } from '../procedure-types.ts';
import { useViewOwners } from './saved-views.ts';
import { viewTexts } from './texts.ts';
import { viewOf } from './viewed-page.ts';

const ViewsDialog = lazyPart(async () => (await import('./views-dialog.tsx')).default);

export function ViewsButton({
  page,
  search,
}: {
  readonly page: SavedView['page'];
  /** Other parameters of the URL are not saved. */
  readonly search: object;
}) {
  const owners = useViewOwners();
  const [isOpen, setIsOpen] = useState(false);
  if (owners.length === 0) return null;
  return (
    <>
      <Button kind="quiet" size="small" onPointerEnter={ViewsDialog.preload} onClick={() => setIsOpen(true)}>
        <Bookmark size={15} aria-hidden="true" />
        {viewTexts.views}
      </Button>
      {isOpen ? <ViewsDialog owners={owners} viewed={viewOf(page, search)} onClose={() => setIsOpen(false)} /> : null}
    </>
  );
}
