import { Ellipsis } from 'lucide-react';
import type { ReactNode } from 'react';
import { listTexts } from '../texts.tsx';
import { Button } from '../ui/button.tsx';
import { Menu } from '../ui/menu.tsx';

/** `of` is the name of the item, for screen readers. */
export function RowMenu({ children, of }: { readonly of: string; readonly children: ReactNode }) {
  return (
    <Menu
      align="end"
      trigger={
        <Button kind="quiet" size="icon" aria-label={listTexts.actionsFor(of)} title={listTexts.actions}>
          <Ellipsis size={16} />
        </Button>
      }
    >
      {children}
    </Menu>
  );
}
