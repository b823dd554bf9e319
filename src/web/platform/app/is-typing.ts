/** Whether an element takes key presses as text. */
export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** Whether a dialog or a menu is open, so that keys must not act on the page behind it. */
export function hasPopup(): boolean {
  return document.querySelector('[role=dialog],[role=menu]') !== null;
}
