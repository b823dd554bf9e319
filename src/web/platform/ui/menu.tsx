import { cloneElement, type ReactElement, type ReactNode, type RefObject, useRef, useState } from 'react';
import { lazyPart } from './chunks.tsx';

// The popup is a large part of a page's code, and is needed only once the user opens a menu.
const load = () => import('./menu-popup.tsx');
const MenuPopup = lazyPart(async () => (await load()).MenuPopup);

export const MenuItem = lazyPart(async () => (await load()).MenuItem);
export const MenuSeparator = lazyPart(async () => (await load()).MenuSeparator);

function preload(): void {
  for (const part of [MenuPopup, MenuItem, MenuSeparator]) part.preload();
}

interface TriggerProps {
  readonly ref?: RefObject<HTMLButtonElement | null>;
  readonly onClick?: () => void;
  readonly onPointerEnter?: () => void;
  readonly onFocus?: () => void;
  readonly 'aria-haspopup'?: 'menu';
  readonly 'aria-expanded'?: boolean;
}

/** `trigger` is the button, such as `<Button>`. */
export function Menu({
  align = 'start',
  children,
  trigger,
}: {
  readonly trigger: ReactElement<TriggerProps>;
  readonly children: ReactNode;
  readonly align?: 'start' | 'end';
}) {
  const [isOpen, setIsOpen] = useState(false);
  const [isWanted, setIsWanted] = useState(false);
  const anchor = useRef<HTMLButtonElement>(null);
  const button = cloneElement(trigger, {
    ref: anchor,
    'aria-haspopup': 'menu',
    'aria-expanded': isOpen,
    onPointerEnter: preload,
    onFocus: preload,
    onClick: () => {
      setIsWanted(true);
      setIsOpen(true);
    },
  });
  return (
    <>
      {button}
      {isWanted ? (
        <MenuPopup anchor={anchor} align={align} isOpen={isOpen} onChange={setIsOpen}>
          {children}
        </MenuPopup>
      ) : null}
    </>
  );
}
