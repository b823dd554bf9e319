import { Bookmark } from 'lucide-react';
import { useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { lazyPart } from '../../ui/chunks.tsx';
import type { SavedView } from '../contract.ts';
import { useViewOwner } from './saved-views.ts';

const ViewsDialog = lazyPart(async () => (await import('./views-dialog.tsx')).default);

/** Opens the saved views, and saves the view of this page. */
export function ViewsButton({ page }: { readonly page: SavedView['page'] }) {
  const organization = useViewOwner();
  const [isOpen, setIsOpen] = useState(false);
  if (organization === undefined) return null;
  return (
    <>
      <Button kind="quiet" size="small" onPointerEnter={ViewsDialog.preload} onClick={() => setIsOpen(true)}>
        <Bookmark size={15} aria-hidden="true" />
        Views
      </Button>
      {isOpen ? <ViewsDialog organization={organization} page={page} onClose={() => setIsOpen(false)} /> : null}
    </>
  );
}
