import { Ellipsis } from 'lucide-react';
import type { ReactNode } from 'react';
import { Button } from '../ui/button.tsx';
import { Menu } from '../ui/menu.tsx';

/** What may be done with one thing of a list. `of`: what it is, for screen readers. */
export function RowMenu({ children, of }: { readonly of: string; readonly children: ReactNode }) {
  return (
    <Menu
      align="end"
      trigger={
        <Button kind="quiet" size="icon" aria-label={`Actions for ${of}`} title="Actions">
          <Ellipsis size={16} />
        </Button>
      }
    >
      {children}
    </Menu>
  );
}
